import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

const podLogs = '/var/log/pods'

/**
 * What a container of a static pod wrote last, for a reason: it says why it does not run where the API server cannot be asked.
 * @returns empty where there is nothing
 */
export async function lastWords(container: string, folder = podLogs): Promise<string> {
  const pods = (await readdir(folder).catch(() => [])).filter((name) =>
    name.startsWith(`kube-system_${container}-`),
  )
  const logs = await Promise.all(
    pods.map(async (pod) => {
      const of = join(folder, pod, container)
      const names = await readdir(of).catch(() => [])
      // `<number of the restart>.log`
      const numbers = names.flatMap((name) => (/^\d+\.log$/.test(name) ? [Number.parseInt(name)] : []))
      return numbers.length > 0 ? [join(of, `${Math.max(...numbers)}.log`)] : []
    }),
  )
  const texts = await Promise.all(logs.flat().map((path) => readFile(path, 'utf8').catch(() => '')))
  return wordsOf(texts.join('\n'))
}

/** @param what a sentence about a container, by default its name @returns the sentence with what the container wrote last */
export const withLastWords = async (container: string, what = container): Promise<string> =>
  `${what} (${(await lastWords(container)) || 'no output'})`

/** @param log as the container runtime writes it: `<time> stdout|stderr F|P <text>` @returns the newest line of an error, or the newest */
export function wordsOf(log: string): string {
  const lines = log
    .split('\n')
    .flatMap((line) => {
      const [, time, text] = /^(\S+) (?:stdout|stderr) [FP] (.*\S)/.exec(line) ?? []
      return time === undefined || text === undefined ? [] : [{ time, text }]
    })
    .sort((one, other) => (one.time < other.time ? -1 : 1))
  const errors = lines.filter(({ text }) =>
    /^(?:Error|E\d{4} |F\d{4} |panic)|"level":"(?:fatal|error)"/.test(text),
  )
  return (errors.at(-1) ?? lines.at(-1))?.text.slice(0, 300) ?? ''
}
