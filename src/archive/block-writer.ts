/** Compresses into a file, block by block. */
export interface BlockWriter {
  /** The free part of the current block, to write into; never empty. */
  room(): Buffer
  /** Says how many bytes of `room()` were filled. The promise is there when it has to be waited for. */
  filled(bytes: number): Promise<void> | undefined
  put(chunk: Buffer): Promise<void>
  /** Resolves when all of it is on the disk. */
  end(): Promise<void>
  /** Gives up; the file stays as it is. */
  abandon(): Promise<void>
}

/** Where blocks go. */
export interface BlockSink {
  /** All blocks but the last have this size, so that what is made of them depends on the content alone. */
  readonly blockBytes: number
  /** Blocks that it works on at a time. */
  readonly atOnce: number
  /** Resolves when the block is no longer needed. */
  take(block: Buffer): Promise<void>
  /** The last one, which may be empty. Resolves when it and all before it are on the disk. */
  end(block: Buffer): Promise<void>
  abandon(): Promise<void>
}

/** As many blocks as the sink works on, and one that is filled meanwhile. */
export function createBlockWriter(sink: BlockSink): BlockWriter {
  const { blockBytes } = sink
  const makeBlock = () => ({ bytes: Buffer.allocUnsafeSlow(blockBytes), isFree: Promise.resolve() })
  // The one that is filled, and those that are being taken, the oldest first.
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
