// Loaded into the daemon by --require: SIGUSR2 writes the longest stop of its event loop since the last one to the file that
// BENCH_LOOP_DELAY names, in milliseconds.
const { renameSync, writeFileSync } = require('node:fs')
const { monitorEventLoopDelay } = require('node:perf_hooks')

const file = process.env.BENCH_LOOP_DELAY
const histogram = monitorEventLoopDelay({ resolution: 1 })
histogram.enable()
process.on('SIGUSR2', () => {
  writeFileSync(`${file}.new`, String(histogram.max / 1e6))
  renameSync(`${file}.new`, file)
  histogram.reset()
})
