"""Exact answers to the problems: closed forms, enumeration and quadrature."""
