"""From a fitted family to a `Summary`: the answer in two sentences, and what to be wary of."""
