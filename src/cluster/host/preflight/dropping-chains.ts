import { isRecord } from '../../../base/json.ts'
import { ask } from '../../../host/ask.ts'
import type { CommandRunner } from '../../../system/runner.ts'

const timeoutMs = 10_000
// The rules of a host with some thousand blocked addresses.
const longestRulesetBytes = 16_777_216

/**
 * Reads which chains of this host drop or reject what they do not accept: by their policy, or by a rule without a condition, as firewalld
 * and many images have it at the end. nft knows the chains of iptables too, but not those of its old variant.
 * @param privileged runs programs with CAP_NET_ADMIN
 * @returns as operators name them; none where no program can say it, since a firewall is only warned of
 */
export async function readDroppingChains(privileged: CommandRunner): Promise<readonly string[]> {
  const ruleset: CommandRunner = {
    run: (program, args, options) =>
      privileged.run(program, args, { ...options, maxOutputBytes: longestRulesetBytes }),
  }
  const askNft = (what: string) => ask(ruleset, 'nft', ['--json', 'list', what], timeoutMs)
  const [rules, legacy] = await Promise.all([
    askNft('ruleset'),
    // With the name of a table it would make this table.
    ask(ruleset, 'iptables-legacy-save', [], timeoutMs),
  ])
  // Without the rules the policies are still known.
  const nft = 'stdout' in rules ? rules : await askNft('chains')
  return [
    ...('stdout' in nft ? parseNftChains(nft.stdout) : []),
    ...('stdout' in legacy ? parseLegacyChains(legacy.stdout) : []),
  ]
}

/** What becomes of a packet that no rule with a condition has decided. */
type Verdict = 'accept' | 'drop' | 'return' | { readonly to: string; readonly comesBack: boolean }

interface Chain {
  /** As operators name it. */
  readonly shown: string
  /** Whether all packets to this host, or through it, come here. */
  readonly isBase: boolean
  readonly drops: boolean
  /** The verdicts of its rules without a condition, in order. */
  readonly verdicts: Verdict[]
}

/** The base chains in which such a packet ends as dropped. */
const droppingOf = (chains: ReadonlyMap<string, Chain>): readonly string[] =>
  [...chains.values()]
    .filter((chain) => chain.isBase && (endOf(chain, chains, new Set()) ?? chain.drops))
    .map(({ shown }) => shown)

/** Whether a chain drops the packet, true, or accepts it; undefined where it comes out of the chain undecided. */
function endOf(
  chain: Chain | undefined,
  chains: ReadonlyMap<string, Chain>,
  passed: Set<Chain>,
): boolean | undefined {
  // A loop of chains is refused by the kernel; a text may have one.
  if (!chain || passed.has(chain)) return undefined
  passed.add(chain)
  for (const verdict of chain.verdicts) {
    if (verdict === 'return') return undefined
    if (typeof verdict === 'string') return verdict === 'drop'
    const end = endOf(chains.get(verdict.to), chains, passed)
    if (end !== undefined || !verdict.comesBack) return end
  }
  return undefined
}

/** The output of `nft --json list ruleset`, or of `list chains`, which has no rules: libnftables-json(5). */
export function parseNftChains(text: string): readonly string[] {
  let found: unknown
  try {
    found = JSON.parse(text)
  } catch {
    return []
  }
  const listed = isRecord(found) && Array.isArray(found.nftables) ? found.nftables.filter(isRecord) : []
  const keyOf = (each: Readonly<Record<string, unknown>>, name: unknown) =>
    `${String(each.family)} ${String(each.table)} ${String(name)}`
  const chains = new Map<string, Chain>()
  for (const { chain, rule } of listed) {
    if (isRecord(chain)) {
      const { family, table, name, type = 'filter', hook, policy } = chain
      chains.set(keyOf(chain, name), {
        shown: `chain ${String(name)} of table ${String(family)} ${String(table)}`,
        isBase: type === 'filter' && (hook === 'input' || hook === 'forward'),
        drops: policy === 'drop',
        verdicts: [],
      })
    } else if (isRecord(rule) && Array.isArray(rule.expr)) {
      const verdict = verdictOfNft(rule.expr.filter(isRecord), (name) => keyOf(rule, name))
      if (verdict) chains.get(keyOf(rule, rule.chain))?.verdicts.push(verdict)
    }
  }
  return droppingOf(chains)
}

// Statements that every packet passes.
const passing = ['counter', 'log', 'comment']

function verdictOfNft(
  statements: readonly Readonly<Record<string, unknown>>[],
  keyOf: (chain: unknown) => string,
): Verdict | undefined {
  for (const statement of statements) {
    const [name = '', value] = Object.entries(statement)[0] ?? []
    // What iptables has added: a comment is a match that all packets have.
    const of = name === 'xt' && isRecord(value) ? `xt ${String(value.type)} ${String(value.name)}` : name
    if (of === 'accept' || of === 'xt target ACCEPT') return 'accept'
    if (['drop', 'reject', 'xt target DROP', 'xt target REJECT'].includes(of)) return 'drop'
    if (of === 'return') return 'return'
    if ((of === 'jump' || of === 'goto') && isRecord(value))
      return { to: keyOf(value.target), comesBack: of === 'jump' }
    if (!passing.includes(of) && of !== 'xt match comment') return undefined
  }
  return undefined
}

/** The output of iptables-save(8). */
export function parseLegacyChains(text: string): readonly string[] {
  const filter = /^\*filter$([\s\S]*?)^COMMIT$/m.exec(text)?.[1] ?? ''
  const chains = new Map<string, Chain>()
  for (const [, name = '', policy] of filter.matchAll(/^:(\S+) (\S+)/gm))
    chains.set(name, {
      shown: `chain ${name} of iptables-legacy`,
      isBase: name === 'INPUT' || name === 'FORWARD',
      drops: policy === 'DROP',
      verdicts: [],
    })
  // Only a comment may stand between the chain and its target.
  const rule = /^-A (\S+)(?: -m comment --comment (?:"(?:[^"\\]|\\.)*"|\S+))? -([jg]) (\S+)/gm
  for (const [, name = '', kind, target = ''] of filter.matchAll(rule)) {
    const verdict: Verdict | undefined = {
      ACCEPT: 'accept' as const,
      DROP: 'drop' as const,
      REJECT: 'drop' as const,
      RETURN: 'return' as const,
    }[target]
    if (verdict) chains.get(name)?.verdicts.push(verdict)
    else if (chains.has(target)) chains.get(name)?.verdicts.push({ to: target, comesBack: kind === 'j' })
  }
  return droppingOf(chains)
}
