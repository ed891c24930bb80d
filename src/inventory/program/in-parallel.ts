/** Does the work for each item of a list, `atOnce` at a time; returns the results in the order of the list. */
export async function inParallel<T, Result>(
  atOnce: number,
  list: readonly T[],
  work: (item: T) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  const queue = list.entries()
  const worker = async () => {
    for (const [index, item] of queue) results[index] = await work(item)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return results
}
