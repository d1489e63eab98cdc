/* Logistic growth dy/dt = rate y (1 - y / capacity), y(0) = 0.5, measured with an error of sd 0.3.
 *
 *     growth QUESTION ANSWER
 *
 * reads {"id":0,"parameters":{"rate":0.6,"capacity":9.8},"seed":7} and writes the log-likelihood.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double parameter(const char *question, const char *key) {
    const char *at = strstr(question, key);
    if (at == NULL) {
        fprintf(stderr, "%s is not in the question\n", key);
        exit(1);
    }
    return strtod(at + strlen(key), NULL);
}

static FILE *open_or_exit(const char *path, const char *mode) {
    FILE *file = fopen(path, mode);
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    return file;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: growth QUESTION ANSWER\n");
        return 1;
    }
    char text[4096];
    FILE *question = open_or_exit(argv[1], "r");
    text[fread(text, 1, sizeof text - 1, question)] = '\0';
    fclose(question);
    double rate = parameter(text, "\"rate\":"), capacity = parameter(text, "\"capacity\":");

    const double sd = 0.3, step = 1e-3;
    double t = 0, y = 0.5, time, size, sum = 0;
    FILE *data = open_or_exit("growth.csv", "r");
    if (fscanf(data, "%*[^\n]") == EOF) return 1; /* the heading */
    while (fscanf(data, "%lf,%lf", &time, &size) == 2) {
        for (; t < time - step / 2; t += step) { /* the midpoint rule: its error is far below sd */
            double half = y + step / 2 * rate * y * (1 - y / capacity);
            y += step * rate * half * (1 - half / capacity);
        }
        double z = (size - y) / sd;
        sum -= z * z / 2 + log(sd) + log(2 * acos(-1)) / 2;
    }
    fclose(data);

    FILE *answer = open_or_exit(argv[2], "w");
    fprintf(answer, "%.17g\n", sum);
    return fclose(answer) == 0 ? 0 : 1;
}
