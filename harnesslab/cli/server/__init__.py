"""`harnesslab serve` and `prepare`: processes under one supervisor that leaves none behind."""
