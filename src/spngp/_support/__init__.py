"""Small tools that every layer shares: threads, memory, progress, whole files, checks, types."""
