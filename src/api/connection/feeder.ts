/** A connection that waits for its next piece. */
export interface Fed {
  /** Connections with the same name take turns with each other, and all of them together with connections of other names. */
  readonly turnName: string
  /** Whether it has bytes for its parser, and may have them parsed now. */
  isReady(): boolean
  /** Has one piece parsed. */
  takePiece(): void
}

/**
 * Gives the parsers of all connections of this process their pieces. Node parses all that it has read of a connection before it returns to
 * the event loop; here, pieces of all connections together take some milliseconds of a turn of the loop (docs/adr/0033).
 */
export interface Feeder {
  /** Called when a connection may have become ready; never parses before it returns. */
  offer(fed: Fed): void
  /**
   * Called from the event loop when bytes of a connection have arrived. Parses the first piece at once where no other connection waits and
   * the turn has time left, as for all requests of clients that wait for replies.
   */
  arrived(fed: Fed): void
  /** Counts of the work, for tests. */
  counts(): { readonly pieces: number; readonly turns: number; readonly waiting: number }
}

export interface FeederOptions {
  /** Time for parsing pieces in one turn of the event loop; the last one may take longer. Milliseconds. */
  readonly turnMs?: number
  /** Monotonic milliseconds. */
  readonly now?: () => number
}

const usualTurnMs = 4

export function createFeeder({
  turnMs = usualTurnMs,
  now = () => performance.now(),
}: FeederOptions = {}): Feeder {
  // Sets and maps keep the order of insertion: who has had its turn is added at the end.
  const waiting = new Map<string, Set<Fed>>()
  let count = 0
  let pieces = 0
  let turns = 0
  let spentMs = 0
  let isTurnOpen = false
  let isParsing = false
  let isNextComing = false

  function enqueue(fed: Fed): void {
    const { turnName } = fed
    let named = waiting.get(turnName)
    if (!named) waiting.set(turnName, (named = new Set()))
    if (named.has(fed)) return
    named.add(fed)
    count += 1
    openTurn()
  }

  function dequeue(): Fed | undefined {
    for (const [name, named] of waiting) {
      waiting.delete(name)
      for (const fed of named) {
        named.delete(fed)
        count -= 1
        if (named.size > 0) waiting.set(name, named)
        return fed
      }
    }
    return undefined
  }

  /** Every turn that spends time, or leaves a connection waiting, has an end: there the others go on. */
  function openTurn(): void {
    if (isTurnOpen) return
    isTurnOpen = true
    setImmediate(endTurn)
  }

  /** The next piece follows in this turn if there is time, after the promises and ticks of the piece before, or in the next turn. */
  function goOn(): void {
    if (count === 0 || isNextComing || spentMs >= turnMs) return
    isNextComing = true
    process.nextTick(next, now())
  }

  function next(since: number): void {
    isNextComing = false
    spentMs += now() - since
    if (spentMs >= turnMs) return
    for (;;) {
      const fed = dequeue()
      if (!fed) return
      if (!fed.isReady()) continue
      parse(fed)
      goOn()
      return
    }
  }

  function parse(fed: Fed): void {
    openTurn()
    const since = now()
    isParsing = true
    try {
      pieces += 1
      fed.takePiece()
    } finally {
      isParsing = false
      spentMs += now() - since
      if (fed.isReady()) enqueue(fed)
    }
  }

  function endTurn(): void {
    isTurnOpen = false
    spentMs = 0
    turns += 1
    if (count === 0) return
    // Before the clock is read: a machine that stops between two readings has spent this turn, and needs the next one.
    openTurn()
    next(now())
  }

  return {
    offer(fed) {
      if (!fed.isReady()) return
      enqueue(fed)
      goOn()
    },
    arrived(fed) {
      if (!fed.isReady()) return
      if (count > 0 || isParsing || spentMs >= turnMs) {
        enqueue(fed)
        goOn()
        return
      }
      parse(fed)
      goOn()
    },
    counts: () => ({ pieces, turns, waiting: count }),
  }
}
