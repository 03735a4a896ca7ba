"""HarnessLab's own JSON lines: what a program writes to bring a trace that no other format holds, by numbered schemas."""
