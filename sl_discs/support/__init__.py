"""What all above use: errors, checks of arguments, files, locks, caches, memory, signals, terminal
and figures.
"""
