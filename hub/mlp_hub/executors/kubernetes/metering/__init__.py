"""Use of pods as the cluster measures it, which their programs cannot write."""
