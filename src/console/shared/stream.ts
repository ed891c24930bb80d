import type { Signal } from '@preact/signals'
import { isReachable, open, RequestError } from './request.ts'

/** One server-sent event. */
export interface StreamEvent {
  readonly id: string
  readonly event: string
  readonly data: string
}

/** Reads server-sent events of a body (HTML standard, 9.2.6). */
export async function* parseEvents(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<StreamEvent> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  let id = ''
  let event = ''
  let data: string[] = []
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const lines = (rest + value).split(/\r\n|\n|\r/)
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (line === '') {
        if (data.length > 0) yield { id, event: event === '' ? 'message' : event, data: data.join('\n') }
        event = ''
        data = []
        continue
      }
      const [, field = '', text = ''] = /^([^:]*)(?:: ?(.*))?$/.exec(line) ?? []
      if (field === 'id') id = text
      else if (field === 'event') event = text
      else if (field === 'data') data.push(text)
    }
  }
}

/** `waiting`: the connection has ended, and is made anew. */
export type StreamState = 'connecting' | 'live' | 'waiting'

interface FollowOptions {
  readonly onEvent: (event: StreamEvent) => void
  readonly onState: (state: StreamState) => void
  readonly signal: AbortSignal
}

/** Longest silence of a stream, which sends a comment every 5 s. */
const silenceMs = 11_000

/**
 * Follows a stream until the signal: continues after the last event, and pauses while the page is hidden, since a browser has six connections
 * to a host and each tab would hold one. Not EventSource: that sends no token, and hides why it failed.
 */
export async function follow(path: string, { onEvent, onState, signal }: FollowOptions): Promise<void> {
  const isOver = () => signal.aborted
  let lastId = ''
  let failures = 0
  while (!isOver()) {
    if (document.hidden) {
      await untilSeen(signal)
      continue
    }
    const hidden = new AbortController()
    const onHide = () => {
      if (document.hidden) hidden.abort()
    }
    document.addEventListener('visibilitychange', onHide)
    try {
      onState('connecting')
      const reply = await open(path, {
        timeoutMs: 0,
        signal: AbortSignal.any([signal, hidden.signal]),
        headers: lastId === '' ? {} : { 'last-event-id': lastId },
      })
      onState('live')
      failures = 0
      if (reply.body)
        for await (const event of parseEvents(endInSilence(reply.body))) {
          if (event.event === 'end') break
          if (event.id !== '') lastId = event.id
          onEvent(event)
        }
    } catch (error) {
      failures += 1
      if (!isOver() && !hidden.signal.aborted && !(error instanceof RequestError)) isReachable.value = false
    } finally {
      document.removeEventListener('visibilitychange', onHide)
    }
    if (isOver()) return
    onState('waiting')
    if (!hidden.signal.aborted) await pause(Math.min(500 * 2 ** failures, 8_000), signal)
  }
}

/**
 * Collects what a stream tells, the newest first. Many that come at once, as stored events, are drawn together.
 * @param into what is shown
 * @param kept how many at most
 */
export function collectNewest<Item>(into: Signal<readonly Item[]>, kept: number) {
  let arrived: Item[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  into.value = []
  const draw = () => {
    timer = undefined
    into.value = [...arrived.toReversed(), ...into.value].slice(0, kept)
    arrived = []
  }
  return {
    add(item: Item): void {
      arrived.push(item)
      timer ??= setTimeout(draw, 50)
    },
    end: () => clearTimeout(timer),
  }
}

/** Fails a body that is silent for too long: its connection is lost without a sign. */
function endInSilence(body: ReadableStream<Uint8Array<ArrayBuffer>>) {
  let timer: ReturnType<typeof setTimeout> | undefined
  return body.pipeThrough(
    new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      start(controller) {
        timer = setTimeout(() => controller.error(new Error('the stream is silent')), silenceMs)
      },
      transform(chunk, controller) {
        clearTimeout(timer)
        timer = setTimeout(() => controller.error(new Error('the stream is silent')), silenceMs)
        controller.enqueue(chunk)
      },
      flush: () => clearTimeout(timer),
    }),
  )
}

/** Waits, at most until the signal. */
export const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer)
        resolve()
      },
      { once: true },
    )
  })

const untilSeen = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const check = () => {
      if (document.hidden && !signal.aborted) return
      document.removeEventListener('visibilitychange', check)
      resolve()
    }
    document.addEventListener('visibilitychange', check)
    signal.addEventListener('abort', check, { once: true })
  })
