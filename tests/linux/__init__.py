"""Tests of the Linux backend."""
