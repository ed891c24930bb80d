// Rare enough to cost nothing, often enough that they are few.
const betweenBytes = 8_388_608

let letGoBytes = 0

/**
 * For whoever moves many bytes through buffers: so many bytes of them are no longer used. V8 does not weigh buffers
 * when it decides upon a collection of young objects, so a transfer piles up 100 MB of them before it collects everything.
 * Does nothing without `--expose-gc`, which the unit gives.
 */
export function letBuffersGo(bytes: number): void {
  letGoBytes += bytes
  if (letGoBytes < betweenBytes) return
  letGoBytes = 0
  globalThis.gc?.({ type: 'minor' })
}
