// V8 counts buffers as old objects and collects everything each time about 8 MiB have been added. Collections of young
// objects, of half a millisecond, have to come well before that.
const betweenBytes = 2_097_152

let letGoBytes = 0
let collect: NodeJS.GCFunction | undefined

/**
 * Reports that this many bytes of buffers are no longer used, for code that moves many bytes through buffers. V8
 * ignores buffers when it decides on a collection of young objects, so a transfer would pile up 100 MB of them before
 * V8 collects everything.
 */
export function letBuffersGo(bytes: number): void {
  letGoBytes += bytes
  if (letGoBytes < betweenBytes) return
  letGoBytes = 0
  collect ??= exposeCollector()
  collect({ type: 'minor' })
}

/**
 * V8 exposes its collector to a context that is created while the flag is set. The flag is not set on the command line:
 * V8 includes those flags in its cache check, so Node's own modules would be recompiled at every start (docs/adr/0005).
 */
function exposeCollector(): NodeJS.GCFunction {
  // Not imported: no start needs these modules.
  const { setFlagsFromString } = process.getBuiltinModule('node:v8')
  const { runInNewContext } = process.getBuiltinModule('node:vm')
  setFlagsFromString('--expose-gc')
  try {
    return runInNewContext('gc') as NodeJS.GCFunction
  } finally {
    setFlagsFromString('--no-expose-gc')
  }
}
