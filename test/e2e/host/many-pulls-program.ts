// So many clients at once, in a network namespace that is not that of the test: each gets a blob, and reads nothing of it until all
// have the head of their reply. Prints `all`, waits for the end of standard input, reads the rest, and prints how the replies ended.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'

const [url = '', authorization = '', count = ''] = process.argv.slice(2)
const agent = new Agent({ keepAlive: false, maxSockets: Infinity })

const replies = await Promise.all(
  Array.from({ length: Number(count) }, async () => {
    const asked = get(url, { agent, headers: { authorization } })
    const [reply] = (await once(asked, 'response')) as [IncomingMessage]
    return reply
  }),
)
console.log('all')
process.stdin.resume()
await once(process.stdin, 'end')

const outcomes: Record<string, number> = {}
await Promise.all(
  replies.map(async (reply) => {
    const sum = createHash('sha256')
    for await (const chunk of reply) sum.update(chunk as Buffer)
    const outcome = `${reply.statusCode} ${sum.digest('hex')}`
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
  }),
)
console.log(JSON.stringify(outcomes))
