"""Makes runs.

``plan``: reads an experiment; ``backends``, ``executors``: where its runs are made; ``execution``: the loop.
``precision``: repeats until a metric is precise enough; ``session``: one run step by step; ``replays``: recorded
queues; ``user_aqm``: disciplines in Python; ``designs``: points of a sweep; ``costs``: memory and time.
"""
