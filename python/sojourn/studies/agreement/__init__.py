"""Whether two backends agree. ``backends``: their figures beside each other; ``rule``: the rule of the verdicts.

``tolerances``: how far figures may differ; ``courses``: the first packet that differs; ``section``: its report.
"""
