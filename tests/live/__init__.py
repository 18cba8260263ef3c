"""Tests of runs that are watched."""
