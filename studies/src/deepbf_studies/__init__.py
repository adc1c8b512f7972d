"""Problems with known answers for deepbf, and the figures and tables of the paper that it grew from.

`problems`: models, the shape of their data, and their exact Bayes factors. `paper`: every figure and table, recomputed
by one command.
"""
