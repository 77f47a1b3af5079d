"""What a cluster does is tried with objects of the hub's own, in namespaces that go again: the doctor's."""
