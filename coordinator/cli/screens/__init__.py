"""Screens for a person at a terminal: the queue of reviews, and the dashboard.

The only room that imports Textual, and it is imported only when a screen opens.
"""
