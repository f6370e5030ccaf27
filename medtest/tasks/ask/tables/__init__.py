"""Tables of systems that answer questions: flips, accuracy, states, changes, costs."""
