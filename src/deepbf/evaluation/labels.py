"""Labels that results, tables and plots share."""

# The estimator under which exact log Bayes factors appear.
EXACT = "exact"
# The group that averages over models by their prior probabilities.
WEIGHTED = "weighted"
