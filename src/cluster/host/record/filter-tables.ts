/** The chains and rules of one table of iptables, in their order. */
export interface FilterTable {
  readonly name: string
  /** Chains that the kernel does not define. */
  readonly chains: readonly string[]
  /** Lines that begin with `-A CHAIN`, without counters, spelled as iptables-save(8) and iptables-restore(8) do. */
  readonly rules: readonly string[]
}

/**
 * Parses the output of iptables-save. Tables without chains of their own and without rules are left out: which of them exist only shows
 * who has looked before, since the nft variant prints the chains of the kernel also where no table has them.
 */
export function parseFilterTables(text: string): readonly FilterTable[] {
  const tables: { name: string; chains: string[]; rules: string[] }[] = []
  for (const line of text.split('\n')) {
    const table = tables.at(-1)
    if (line.startsWith('*')) tables.push({ name: line.slice(1).trim(), chains: [], rules: [] })
    // A chain of the kernel has a policy, one of a user has `-`.
    else if (line.startsWith(':')) table?.chains.push(...(/^:(\S+) - /.exec(line)?.slice(1) ?? []))
    else if (/^(\[\d+:\d+\] )?-A /.test(line)) table?.rules.push(line.replace(/^\[\d+:\d+\] /, ''))
  }
  return tables.filter(({ chains, rules }) => chains.length + rules.length > 0)
}

/** The chain that a rule is in. */
export const chainOf = (rule: string): string => rule.split(' ', 2)[1] ?? ''

/** The chain or target that a rule jumps or goes to; empty for a rule without one. */
export const targetOf = (rule: string): string => / -[jg] (\S+)/.exec(withoutTexts(rule))?.[1] ?? ''

/** The comments of a rule, with their escapes. */
export const commentsOf = (rule: string): readonly string[] =>
  [...rule.matchAll(/ --comment ("(?:[^"\\]|\\.)*"|\S+)/g)].map(([, comment = '']) =>
    comment.replace(/^"(.*)"$/s, '$1'),
  )

/** The networks that a rule matches as source or destination, without those that it excludes. */
export const networksOf = (rule: string): readonly string[] =>
  [...withoutTexts(rule).matchAll(/(?<! !) -[sd] (\S+)/g)].map(([, network = '']) => network)

/** A comment may contain anything. */
const withoutTexts = (rule: string) => rule.replace(/"(?:[^"\\]|\\.)*"/g, '""')
