import { ask } from '../../../host/ask.ts'
import type { CommandRunner } from '../../../system/runner.ts'

const timeoutMs = 10_000

/**
 * Reads which chains of this host drop what they do not accept: nft knows those of iptables too, but not those of its old variant.
 * @param privileged runs programs with CAP_NET_ADMIN
 * @returns as operators name them; none where no program can say it, since a firewall is only warned of
 */
export async function readDroppingChains(privileged: CommandRunner): Promise<readonly string[]> {
  const [nft, legacy] = await Promise.all([
    ask(privileged, 'nft', ['--json', 'list', 'chains'], timeoutMs),
    // With the name of a table it would make this table.
    ask(privileged, 'iptables-legacy-save', [], timeoutMs),
  ])
  return [
    ...('stdout' in nft ? parseNftChains(nft.stdout) : []),
    ...('stdout' in legacy ? parseLegacyChains(legacy.stdout) : []),
  ]
}

interface Chain {
  readonly family?: string
  readonly table?: string
  readonly name?: string
  readonly hook?: string
  readonly policy?: string
}

/** The output of `nft --json list chains`, libnftables-json(5). */
export function parseNftChains(text: string): readonly string[] {
  let found: { readonly nftables?: readonly { readonly chain?: Chain }[] }
  try {
    found = JSON.parse(text) as typeof found
  } catch {
    return []
  }
  return (found.nftables ?? []).flatMap(({ chain: { family, table, name, hook, policy } = {} }) =>
    policy === 'drop' && (hook === 'input' || hook === 'forward')
      ? [`chain ${name} of table ${family} ${table}`]
      : [],
  )
}

/** The output of iptables-save(8). */
export const parseLegacyChains = (text: string): readonly string[] =>
  [...text.matchAll(/^:(INPUT|FORWARD) DROP /gm)].map(([, chain]) => `chain ${chain} of iptables-legacy`)
