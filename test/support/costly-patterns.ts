/** 807 bytes as JSON that once ended a daemon: each pattern has 80,921 instructions. */
export const costlyVariables = Array.from({ length: 20 }, (_, index) => ({
  name: `v${index}`,
  regex: `(?:${'x?'.repeat(40)}){0,999}${index}`,
  defaultValue: 'xxxx',
}))
