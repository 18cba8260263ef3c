"""Whether two backends agree. ``backends``: their figures beside each other, judged as ``tolerances`` says.

``courses``: the first packet that differs; ``section``: its report.
"""
