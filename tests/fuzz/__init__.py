"""Random manifests, recipes and templates: whatever they hold, vidpipe explains itself and never breaks.

`python -m tests.fuzz 100000` tries so many; the tests here try a few.
"""
