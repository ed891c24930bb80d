import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { createFetch } from '../../../src/uplink/fetch.ts'
import { parseAnnouncement, openDesiredStore } from '../../../src/uplink/desired/desired-store.ts'
import { createDownload } from '../../../src/uplink/desired/download.ts'
import { createFollow } from '../../../src/uplink/desired/follow.ts'

/**
 * Follows a platform, to be killed at any moment: `main.cjs FOLDER URL CA HEADER`. The cluster is a ledger with a line for each order that was
 * accepted, written in one step as a transaction is; an order that is in it is known.
 */
async function main([stateDirectory = '', url = '', ca = '', header = '']: readonly string[]): Promise<void> {
  const ledger = join(stateDirectory, 'ledger')
  const lines = () => (existsSync(ledger) ? readFileSync(ledger, 'utf8').trim().split('\n') : [])
  const current = () => {
    const revision = lines().length
    const [uid = '', name = '', number = ''] = (lines().at(-1) ?? '').split(' ')
    return revision === 0
      ? undefined
      : {
          ...{ uid, name, isDeleting: false },
          newest: { revision, platformNumber: Number(number), outcome: 'good' as const, reason: '' },
          active: { revision, outcome: 'good' as const },
        }
  }
  const log = pino({ level: 'silent' })
  const follow = createFollow({
    store: await openDesiredStore(stateDirectory, log),
    download: createDownload({
      fetch: createFetch({ url, ca: readFileSync(ca, 'utf8'), now: () => Date.now() }),
      folder: join(stateDirectory, 'platform/download'),
      key: Buffer.alloc(32),
      ...{ limitBytes: 50_000_000, reserveBytes: 0, syncBytes: 262_144 },
    }),
    cluster: {
      current,
      async apply(order) {
        const known = lines().findIndex((line) => line.split(' ')[2] === String(order.number))
        if (known !== -1) return { kind: 'applied', revision: known + 1 }
        if (order.isDeleted) return { kind: 'refused', message: 'not here' }
        const sum = createHash('sha256')
        if ('definition' in order) for await (const piece of order.definition.open()) sum.update(piece)
        await sleep(20)
        appendFileSync(ledger, `${order.uid} ${order.name} ${order.number} ${sum.digest('hex')}\n`)
        await sleep(20)
        return { kind: 'applied', revision: lines().length }
      },
    },
    limitBytes: 50_000_000,
    ...{ path: () => '/v1/edgehosts/h/spc/download', token: () => 'token', tenantUid: () => undefined },
    onChange: () => undefined,
    pause: (ms, signal) => sleep(ms, undefined, { signal }).catch(() => undefined),
    ...{ random: () => 0, stopping: new AbortController().signal, log },
  })
  follow.announce(parseAnnouncement(header))
  await follow.run()
}

void main(process.argv.slice(2))
