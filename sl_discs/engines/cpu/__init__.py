"""The engine for CPU cores: compiled loops, one chain at a time on each core, whose state stays in
its cache.
"""
