"""Jobs that people make with kubectl: read, let run, held again and told of; each is its user's object, and stays that."""
