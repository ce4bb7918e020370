"""Comparison with the paper's published numbers: the cells to run, their storage, and the
report.
"""
