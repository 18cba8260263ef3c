"""Files. ``bounded``, ``typed``: reads files that may be anything, with an error that names the fault.

``whole``: writes a file whole or not at all; ``storage``: several together, and never over a file of the user's;
``manifest``: which files are ours; ``workspace``: a hidden folder for unfinished ones; ``interrupts``: a Ctrl-C waits
until files are in place.
"""
