"""Stochastic localization: its schedules, its observation process, and one step of a localized
chain.
"""
