"""Places where untrusted commands and harnesses run, reaching nothing else.

`available` names the two ways of this machine. `bubblewrap` is the one that is run daily: `layout` says what a sandbox
shows, `pins` what it holds fixed, `box` is the running process, started by `spawner` under an id from `users`;
`attending` waits for a request under the rules of `commands`, with `watcher` counting memory; `output`, `workspace` and
`child` are what comes back. `inside` is what runs on the other side. `docker` says the same to a Docker engine.
"""
