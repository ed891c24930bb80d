/** Compresses into a file, block by block. */
export interface BlockWriter {
  /** The free part of the current block, to be filled by the caller; never empty. */
  room(): Buffer
  /** Takes over that many bytes of `room()`. Returns a promise when the caller has to wait. */
  filled(bytes: number): Promise<void> | undefined
  put(chunk: Buffer): Promise<void>
  /** Resolves when everything is on the disk. */
  end(): Promise<void>
  /** Stops writing; the file stays as it is. */
  abandon(): Promise<void>
}

/** The consumer of the blocks. */
export interface BlockSink {
  /** All blocks except the last have this size, so that the output depends on the content alone. */
  readonly blockBytes: number
  /** Number of blocks that it processes in parallel. */
  readonly atOnce: number
  /** Resolves when the block may be reused. */
  take(block: Buffer): Promise<void>
  /** Takes the last block, which may be empty. Resolves when all blocks are on the disk. */
  end(block: Buffer): Promise<void>
  abandon(): Promise<void>
}

/** Holds as many blocks as the sink processes in parallel, and one more that is being filled. */
export function createBlockWriter(sink: BlockSink): BlockWriter {
  const { blockBytes } = sink
  const makeBlock = () => ({ bytes: Buffer.allocUnsafeSlow(blockBytes), isFree: Promise.resolve() })
  // The block that is being filled, and the blocks in the sink, the oldest first.
  let block = makeBlock()
  const others = Array.from({ length: sink.atOnce }, makeBlock)
  let used = 0

  const next = async (): Promise<void> => {
    block.isFree = sink.take(block.bytes)
    // The next caller that needs the block, or the end, gets the error.
    block.isFree.catch(() => undefined)
    others.push(block)
    block = others.shift() ?? makeBlock()
    used = 0
    await block.isFree
  }

  const writer: BlockWriter = {
    room: () => block.bytes.subarray(used),
    filled(bytes) {
      used += bytes
      return used === blockBytes ? next() : undefined
    },
    async put(chunk) {
      for (let at = 0; at < chunk.length;) {
        const taken = chunk.copy(writer.room(), 0, at)
        at += taken
        await writer.filled(taken)
      }
    },
    end: () => sink.end(block.bytes.subarray(0, used)),
    abandon: () => sink.abandon(),
  }
  return writer
}
