"""What rollouts add up to: cells, rates with their denominators, paired tests, certificates, attribution."""
