"""One sandbox per notebook server, job and app."""
