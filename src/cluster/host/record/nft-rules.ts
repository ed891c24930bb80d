import type { FilterTable } from './filter-tables.ts'

// Tables that iptables manages in nftables. All others belong to one program each, and are compared as a whole.
const ofIptables = /^(ip|ip6) (filter|nat|mangle|raw|security)$/

export const isTableOfIptables = (table: string): boolean => ofIptables.test(table)

interface Entry {
  readonly chain?: Place & { readonly name: string; readonly hook?: string }
  readonly rule?: Place & {
    readonly chain: string
    readonly handle: number
    readonly comment?: string
    readonly expr?: readonly Expression[]
  }
}
interface Expression {
  readonly jump?: { readonly target: string }
  readonly goto?: { readonly target: string }
  readonly match?: {
    readonly op: string
    readonly left: { readonly payload?: { readonly field: string } }
    readonly right: string | { readonly prefix?: { readonly addr: string; readonly len: number } }
  }
}
interface Place {
  readonly family: string
  readonly table: string
}

/**
 * The rules of iptables as nftables has them, for a host with nft and without iptables, where kube-proxy and network plugins bring theirs.
 * A rule is a line like those of iptables-save with its handle and what says whose it is: its networks, its comment and its target.
 * @param json the output of `nft --json list ruleset`, libnftables-json(5)
 */
export function parseNftRules(json: string): readonly FilterTable[] {
  const { nftables = [] } = JSON.parse(json || '{}') as { readonly nftables?: readonly Entry[] }
  const tables = new Map<string, { chains: string[]; rules: string[] }>()
  const tableOf = ({ family, table }: Place) => {
    const name = `${family} ${table}`
    if (!isTableOfIptables(name)) return undefined
    return tables.get(name) ?? tables.set(name, { chains: [], rules: [] }).get(name)
  }
  for (const { chain, rule } of nftables) {
    // A chain with a hook is one of the kernel.
    if (chain && chain.hook === undefined) tableOf(chain)?.chains.push(chain.name)
    if (!rule) continue
    const target = rule.expr?.flatMap(({ jump, goto }) => jump?.target ?? goto?.target ?? []).at(-1)
    const comment = rule.comment === undefined ? '' : ` --comment ${JSON.stringify(rule.comment)}`
    const jump = target === undefined ? '' : ` -j ${target}`
    const matched = (rule.expr ?? []).map(spellMatch).join('')
    tableOf(rule)?.rules.push(`-A ${rule.chain} handle ${rule.handle}${matched}${comment}${jump}`)
  }
  return [...tables]
    .map(([name, { chains, rules }]) => ({ name, chains, rules }))
    .filter(({ chains, rules }) => chains.length + rules.length > 0)
}

/** A network that a rule matches as source or destination; what else it matches does not say whose it is. */
function spellMatch({ match }: Expression): string {
  const option = { saddr: ' -s', daddr: ' -d' }[match?.left.payload?.field ?? '']
  if (!match || !option || match.op !== '==') return ''
  if (typeof match.right === 'string') return `${option} ${match.right}`
  const { prefix } = match.right
  return prefix ? `${option} ${prefix.addr}/${prefix.len}` : ''
}

/** The lines of a change, as nft(8) reads them. */
export const nftScript = (table: string, lines: readonly string[]): string =>
  lines
    .map((line) => {
      const [action = '', chain = '', , handle = ''] = line.split(' ', 4)
      const place = `${table} ${chain}`
      if (action === '-D') return `delete rule ${place} handle ${handle}\n`
      return `${action === '-F' ? 'flush' : 'delete'} chain ${place}\n`
    })
    .join('')
