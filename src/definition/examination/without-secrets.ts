/**
 * A variable of an exported profile as it stands in a definition that lies on a disk: without the default and the options of a sensitive
 * one, which the host gets as its value. What a variable without a default may not be is taken off too, so that the definition stays valid.
 */
export function withoutSecrets(variable: unknown): unknown {
  const { defaultValue, options, immutable, required, inputType, ...rest } = variable as Readonly<
    Record<string, unknown>
  >
  const hasOptions = Array.isArray(options) && options.length > 0
  if (rest.isSensitive !== true || (!hasOptions && (defaultValue ?? '') === '')) return variable
  return {
    ...rest,
    ...(required === undefined || rest.hidden === true ? {} : { required }),
    ...(inputType === undefined || inputType === 'dropdown' ? {} : { inputType }),
  }
}
