"""Parts that learners share: training data, responses, the path of weights, evaluation, and the text of the outcome."""
