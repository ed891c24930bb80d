// Rare enough to cost nothing, often enough that they are few.
const betweenBytes = 8_388_608

let letGoBytes = 0
let collect: NodeJS.GCFunction | undefined

/**
 * Tells that so many bytes of buffers are no longer used, where many bytes move through them. V8 does not weigh buffers
 * when it decides upon a collection of young objects, so a transfer piles up 100 MB of them before it collects everything.
 */
export function letBuffersGo(bytes: number): void {
  letGoBytes += bytes
  if (letGoBytes < betweenBytes) return
  letGoBytes = 0
  collect ??= exposeCollector()
  collect({ type: 'minor' })
}

/**
 * V8 gives its collector to a context that is made while the flag stands. Not on the command line: there it is part of
 * what V8 compares caches by, and Node's own modules would be compiled anew at every start (docs/adr/0005).
 */
function exposeCollector(): NodeJS.GCFunction {
  // Not imported: no start needs them.
  const { setFlagsFromString } = process.getBuiltinModule('node:v8')
  const { runInNewContext } = process.getBuiltinModule('node:vm')
  setFlagsFromString('--expose-gc')
  try {
    return runInNewContext('gc') as NodeJS.GCFunction
  } finally {
    setFlagsFromString('--no-expose-gc')
  }
}
