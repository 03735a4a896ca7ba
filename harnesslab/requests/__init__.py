"""What people ask for, one schema a request: forms, JSON and arguments become it; actions resolve its names."""
