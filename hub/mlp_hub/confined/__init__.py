"""The way in of every process that takes apart what strangers wrote: it gives up its rights before it reads any of it."""
