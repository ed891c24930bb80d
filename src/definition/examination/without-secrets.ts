/**
 * A variable of an exported profile as it stands in a definition that lies on a disk: without the default and the options of a sensitive
 * one, which the host gets as its value. What a variable without a default may not be is taken off too, so that the definition stays valid.
 */
export function withoutSecrets(variable: unknown): unknown {
  const known = variable as Readonly<Record<string, unknown>>
  const { isSensitive, defaultValue, options, hidden, inputType } = known
  const hasOptions = Array.isArray(options) && options.length > 0
  if (isSensitive !== true || (!hasOptions && (defaultValue ?? '') === '')) return variable
  const left = new Set([
    ...['defaultValue', 'options', 'immutable'],
    ...(hidden === true ? ['required'] : []),
    ...(inputType === 'dropdown' ? ['inputType'] : []),
  ])
  return Object.fromEntries(Object.entries(known).filter(([name]) => !left.has(name)))
}
