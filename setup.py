"""Legacy entry point for tools that call setup.py; everything is declared in pyproject.toml."""

from setuptools import setup

setup()
