"""Scores over HTTP: a server of one model, and the live page (extra: ``serve``)."""
