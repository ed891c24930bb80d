const interruptedCode = 130

/**
 * Calls `work` at Ctrl-C, and ends the program as a shell expects it.
 * @returns takes it back
 */
export function onInterrupt(work: () => void): () => void {
  const end = () => {
    work()
    process.exit(interruptedCode)
  }
  process.once('SIGINT', end)
  return () => void process.off('SIGINT', end)
}
