"""Harbor: trials, their job, results, the viewer's form, and task folders read as cases."""
