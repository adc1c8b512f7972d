"""Bayes factors of other kinds, and answers trained for one data set."""
