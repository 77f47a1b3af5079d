"""Problems of this hub, for doctor, panel and /health."""
