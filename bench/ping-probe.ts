import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from './client.ts'
import { readProbeArgs, runProbe } from './probe.ts'

export interface PingArgs {
  readonly port: number
  readonly certificate: string
}

/** Milliseconds each `GET /v1/ping` took, one after the other on one connection. */
export type PingResult = number[]

const betweenMs = 2
const { port, certificate } = readProbeArgs() as PingArgs
const client = createClient({ port, ca: readFileSync(certificate, 'utf8') })
const durations: number[] = []

await runProbe({
  async sample() {
    const { durationMs, status } = await client.send('GET', '/v1/ping')
    if (status !== 200) throw new Error(`the ping answers ${status}`)
    durations.push(durationMs)
    await sleep(betweenMs)
  },
  finish(): PingResult {
    client.close()
    // The first ping includes the handshake of the connection.
    return durations.slice(1)
  },
})
